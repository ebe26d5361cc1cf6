"""Week 4: fusion, kernels and buffers."""
