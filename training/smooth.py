"""Move the outliers of activations into the weights before quantising (SmoothQuant), on a float32 ONNX graph.

A few channels of a layer norm or of the feed-forward are ten times as large as the others, and one scale for all of
them leaves the others few of the 8 bits. Each channel of such an input is divided by a factor, and its row of the
weights multiplied by it: the product is the same, and both sides quantise well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import ModelProto, NodeProto, helper, numpy_helper

STRENGTH = 0.75
"""How much of the outliers the weights take over; measured from .3 to 1, weights in 7 bits."""
_SMALLEST = 1e-5


def smooth(source: Path, target: Path, texts: Iterable[np.ndarray]) -> None:
    """Write the graph with smoothed inputs of its weights; `texts` are rows of token ids that show what is usual."""
    model = onnx.load(source)
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    readers = _readers(model, set(weights))
    largest = _largest(model, list(readers), texts)
    divided: dict[str, NodeProto] = {}
    for name, nodes in readers.items():
        rows = np.max([np.abs(numpy_helper.to_array(weights[node.input[1]])).max(axis=1) for node in nodes], axis=0)
        factor = np.maximum(largest[name], _SMALLEST) ** STRENGTH / np.maximum(rows, _SMALLEST) ** (1 - STRENGTH)
        model.graph.initializer.append(numpy_helper.from_array((1 / factor).astype(np.float32), f"{name}_by"))
        divided[name] = helper.make_node("Mul", [name, f"{name}_by"], [f"{name}_smooth"], f"{name}_smoothed")
        for node in nodes:
            old = weights[node.input[1]]
            new = (numpy_helper.to_array(old) * factor[:, None]).astype(np.float32)
            old.CopyFrom(numpy_helper.from_array(new, old.name))
            node.input[0] = f"{name}_smooth"
    nodes = []
    for node in model.graph.node:
        nodes.append(node)
        nodes.extend(divided[name] for name in node.output if name in divided)
    ordered = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del model.graph.node[:]
    model.graph.node.extend(ordered)
    onnx.save(model, target)


def _readers(model: ModelProto, weights: set[str]) -> Mapping[str, list[NodeProto]]:
    """Return the products with weights by their input; what attention mixes has no outliers, and is left as it is."""
    makers = {name: node.op_type for node in model.graph.node for name in node.output}
    found: dict[str, list[NodeProto]] = defaultdict(list)
    for node in model.graph.node:
        if node.op_type == "MatMul" and node.input[1] in weights and makers.get(node.input[0]) != "Reshape":
            found[node.input[0]].append(node)
    return found


def _largest(model: ModelProto, names: list[str], texts: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
    """Return the largest magnitude of each channel of some inner values."""
    watched = ModelProto.FromString(model.SerializeToString())
    watched.graph.output.extend(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names)
    session = ort.InferenceSession(watched.SerializeToString(), providers=["CPUExecutionProvider"])
    largest: dict[str, np.ndarray] = {}
    for ids in texts:
        values = session.run(names, {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        for name, value in zip(names, values, strict=True):
            found = np.abs(value).reshape(-1, value.shape[-1]).max(axis=0)
            largest[name] = np.maximum(largest.get(name, 0.0), found)
    return largest
