"""The real data of lessons 8 and 9: a language model's weights, and images of digits."""
