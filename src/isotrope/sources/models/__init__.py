"""Models of Hugging Face, GGUF and ONNX, and their hidden states."""
