"""Commands of `attnlib`, one a module: `add` tells argparse, `run` does it."""
