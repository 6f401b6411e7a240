"""The clinic: mistakes that can be run, and the engine that recognises them.

`catalogue` lists the mistakes, `families` holds one wrong-able implementation for
each function, `match` compares an answer with all of them, and `evidence` measures
the number that gave a mistake away. Nothing here imports torch.
"""
