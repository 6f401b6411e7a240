"""The KV cache: bytes for every token of the text, in every layer."""

from __future__ import annotations

from attnlib.shapes import size


def kv_bytes_per_token(
    n_layers: int,
    n_kv_heads: int,
    d_k: int,
    d_v: int | None = None,
    *,
    itemsize: int = 2,
) -> int:
    """Count the bytes that a token takes in the caches of all layers.

    n_layers n_kv_heads (d_k + d_v) itemsize

    Every head its own keys (MHA): n_kv_heads = n_heads. Groups (GQA): n_heads / group.
    One for all (MQA): 1.

    Args:
        n_layers: how many layers, a cache each.
        n_kv_heads: how many key and value heads.
        d_k: numbers in a key of one head.
        d_v: numbers in a value of one head; d_k if left out.
        itemsize: bytes a number takes; 2 for float16 and bfloat16.

    Returns:
        Bytes; there is no array, hence no shape.

    Raises:
        ShapeError: a size is negative.
        TypeError: a size is not a whole number.

    Cost: none worth counting.
    Source: Shazeer 2019 for MQA; Ainslie et al. 2023 for GQA.
    Lesson: 11.

    >>> kv_bytes_per_token(32, 32, 128), kv_bytes_per_token(32, 8, 128)
    (524288, 131072)
    """
    n_layers, n_kv_heads = size("n_layers", n_layers), size("n_kv_heads", n_kv_heads)
    d_k = size("d_k", d_k)
    d_v = d_k if d_v is None else size("d_v", d_v)
    return n_layers * n_kv_heads * (d_k + d_v) * size("itemsize", itemsize)


def mla_bytes_per_token(
    n_layers: int, d_latent: int, d_rotary: int, *, itemsize: int = 2
) -> int:
    """Count the bytes of a token where keys and values are kept compressed (MLA).

    n_layers (d_latent + d_rotary) itemsize

    One vector stands for the keys and values of all heads, and one short key, which
    RoPE turns, is shared by all. With d_latent = 4 d_k and d_rotary = d_k / 2 that is
    as much as 2.25 groups of GQA.

    Args:
        n_layers: how many layers.
        d_latent: numbers in the compressed vector.
        d_rotary: numbers in the rotated key.
        itemsize: bytes a number takes.

    Returns:
        Bytes; there is no array, hence no shape.

    Raises:
        ShapeError: a size is negative.
        TypeError: a size is not a whole number.

    Cost: none worth counting.
    Source: DeepSeek-AI 2024 (DeepSeek-V2), section 2.1.
    Lesson: 11.

    >>> mla_bytes_per_token(60, 512, 64)
    69120
    """
    width = size("d_latent", d_latent) + size("d_rotary", d_rotary)
    return size("n_layers", n_layers) * width * size("itemsize", itemsize)


def cache_bytes(
    per_token: int, n: int, *, batch: int = 1, window: int | None = None
) -> int:
    """Count the bytes of a cache after n tokens.

    batch per_token min(n, window)

    Args:
        per_token: bytes a token takes in all layers.
        n: how many tokens there are so far.
        batch: how many texts.
        window: how many tokens a query may see, itself included; a token that no query
            will see again is dropped. All are kept, if left out.

    Returns:
        Bytes; there is no array, hence no shape.

    Raises:
        ShapeError: a size is negative, or the window less than 1.
        TypeError: a size is not a whole number.

    Cost: none worth counting.
    Source: Jiang et al. 2023 (Mistral 7B), section 2, for the window.
    Lesson: 11.

    >>> [cache_bytes(131072, 8192, window=w) // 2**20 for w in (None, 4096)]
    [1024, 512]
    """
    kept = size("n", n)
    if window is not None:
        kept = min(kept, size("window", window, least=1))
    return size("batch", batch) * size("per_token", per_token) * kept
