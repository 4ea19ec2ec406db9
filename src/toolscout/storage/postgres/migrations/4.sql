-- Numbers of models were used up by every call that brought vectors: those that no model has are given back.
SELECT setval('models_model_seq', coalesce(max(model), 1), max(model) IS NOT NULL) FROM models;
