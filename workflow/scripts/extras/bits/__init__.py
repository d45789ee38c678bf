"""Int8 beyond the lab: GPTQ, other backends, ONNX files, ResNet-18."""
