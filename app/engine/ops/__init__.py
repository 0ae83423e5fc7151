"""Operations: a WGSL template, a shape rule and a NumPy float64 reference each, one folder an operation."""
