"""Pictures of the mechanism: lists of shapes, drawn as SVG by explorers and as figures on paper."""
