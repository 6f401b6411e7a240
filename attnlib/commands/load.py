"""Find what a command line names: `package.module:Thing`, or `path/to/file.py:Thing`.

It runs the code of the file, as `python file.py` would. Whatever that code raises
becomes one sentence.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import sys
import traceback
from pathlib import Path
from types import ModuleType, SimpleNamespace

# What people call the arguments of an attention: of each line, one size.
NAMES = {
    "d_model": "d_model embed_dim dim hidden_size hidden_dim hidden_channels d_hidden "
    "n_embd emb_size emb_dim embedding_dim d_in d_out in_dim out_dim dim_in dim_out d "
    "model_dim input_dim output_dim d_embed embed_size query_dim n_state dmodel",
    "n_heads": "n_heads num_heads n_head heads nhead h nheads num_attention_heads "
    "head_num n_q_heads head",
    "n_kv_heads": "n_kv_heads num_kv_heads kv_heads num_key_value_heads n_kv_head",
    "d_k": "d_k d_v d_head head_dim dim_head head_size d_q d_key d_value",
    "length": "block_size max_len max_length context_length seq_len max_seq_len n_ctx "
    "max_position_embeddings seq_length ctx_len",
    "dropout": "dropout p attn_drop drop dropout_p attn_dropout drop_rate dropout_rate "
    "attn_pdrop resid_pdrop proj_drop",
    "bias": "bias qkv_bias use_bias",
    "config": "config cfg args params conf hparams",
}
MEANS = {name: size for size, names in NAMES.items() for name in names.split()}
# Handed over where a class asks for them: no two of d_model, d_k, their roots and
# n_heads are equal, so that no two mistakes look the same.
D_MODEL, N_HEADS = 32, 4
OTHER_HEADS = (4, 3, 5, 2, 7, 1)  # where a width is said, the first that divides it


class LoadError(Exception):
    """What was named cannot be had: one sentence."""


def load(
    where: str,
    *,
    make: str | None = None,
    d_model: int | None = None,
    n_heads: int | None = None,
    n_kv_heads: int | None = None,
) -> tuple[object, int | None]:
    """The thing to examine, and its number of heads if that was guessed here.

    A class is made with the sizes that it asks for by name, or with `make`, a Python
    expression that sees what the module holds. Everything else is handed on as it is.

    Raises:
        LoadError: there is no such module, file or name, or its code raised.
    """
    place, name = _parts(where, make)
    module = _module(place)
    if make is not None:
        return _made(make, module), n_heads
    thing: object = module
    for part in name.split("."):
        if not hasattr(thing, part):
            raise LoadError(f"There is no {name} in {place}.{_near(part, thing)}")
        thing = getattr(thing, part)
    if not inspect.isclass(thing):
        return thing, n_heads
    return _instance(thing, d_model, n_heads, n_kv_heads)


def _parts(where: str, make: str | None) -> tuple[str, str]:
    place, colon, name = where.rpartition(":")
    if not colon or (len(place) == 1 and place.isalpha()):  # a drive: C:\file.py
        place, name = where, ""
    if not place or not (name or make):
        raise LoadError(
            f"Write module:name or file.py:name, such as model.py:Attention; found "
            f"{where!r}."
        )
    return place, name


def _module(place: str) -> ModuleType:
    if place.endswith(".py") or "/" in place or "\\" in place:
        return _file(Path(place))
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name and (place == error.name or place.startswith(error.name + ".")):
            raise LoadError(
                f"There is no module {place} in this folder or among the installed "
                "packages."
            ) from None
        raise LoadError(_said(place, error)) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise LoadError(_said(place, error)) from None


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        raise LoadError(f"There is no file {path}.")
    path = path.resolve()
    name = path.stem if path.stem not in sys.modules else f"examined_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise LoadError(f"{path.name} is no Python file.")
    if str(path.parent) not in sys.path:  # it may import its neighbours
        sys.path.insert(0, str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look for it there
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise LoadError(_said(path.name, error)) from None
    return module


def _said(place: str, error: BaseException) -> str:
    """That importing failed, with the last line of the error."""
    return f"{place} could not be imported: {last_line(error)}"


def last_line(error: BaseException) -> str:
    """An error as the last line of its traceback, with its place."""
    kind, own = type(error).__name__, ""
    try:
        own = " ".join(str(error).split()).rstrip(".")
    except BaseException:  # a class of the user's own may do anything here
        own = ""
    frames = traceback.extract_tb(error.__traceback__)
    ours = (__file__, importlib.__file__, "<frozen", "<string>")
    theirs = [f for f in frames if not f.filename.startswith(ours)]
    where = ""
    if theirs and not isinstance(error, SyntaxError):  # that one says it itself
        where = f" (line {theirs[-1].lineno} of {Path(theirs[-1].filename).name})"
    return f"{kind}: {own}{where}." if own else f"{kind}{where}."


def _near(part: str, thing: object) -> str:
    near = difflib.get_close_matches(part, dir(thing), n=1)
    return f" Did you mean {near[0]}?" if near else ""


def _made(make: str, module: ModuleType) -> object:
    """What the expression gives, in the names of the module."""
    try:
        return eval(make, dict(vars(module)))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise LoadError(f"--make {make!r} failed: {last_line(error)}") from None


def _sizes(d_model: int | None, n_heads: int | None) -> tuple[int, int]:
    """Heads and a width for a class: as they were said, and so that they fit."""
    if n_heads is None and d_model is not None:
        n_heads = next(h for h in OTHER_HEADS if d_model % h == 0)
    heads = n_heads or N_HEADS
    return heads, d_model or (8 * heads if D_MODEL % heads else D_MODEL)


def _instance(
    kind: type, d_model: int | None, n_heads: int | None, n_kv_heads: int | None
) -> tuple[object, int | None]:
    """One of this class, with sizes for the arguments that it asks for by name."""
    heads, width = _sizes(d_model, n_heads)
    sizes: dict[str, object] = {
        "d_model": width,
        "n_heads": heads,
        "n_kv_heads": n_kv_heads or heads,
        "d_k": width // heads,
        "length": 64,
        "dropout": 0.0,
        "bias": True,
    }
    sizes["config"] = SimpleNamespace(
        **{name: sizes[size] for name, size in MEANS.items() if size in sizes}
    )
    asked = {"d_model": d_model, "n_heads": n_heads, "n_kv_heads": n_kv_heads}
    named, by_place = {}, []
    try:
        parameters = list(inspect.signature(kind).parameters.values())
    except ValueError:  # a class written in C
        parameters = []
    for parameter in parameters:
        size = MEANS.get(parameter.name, "")
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.default is parameter.empty and not size:
            raise LoadError(
                f"{kind.__name__} asks for `{parameter.name}`, which cannot be "
                f'guessed: write --make "{kind.__name__}(...)".'
            )
        wanted = size == "n_heads" or asked.get(size)
        if size == "d_model" and isinstance(parameter.default, int):
            wanted = wanted or parameter.default % heads != 0
        if parameter.default is not parameter.empty and not wanted:
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            by_place.append(sizes[size])
        else:
            named[parameter.name] = sizes[size]
    known = any(MEANS.get(p.name) in ("n_heads", "config") for p in parameters)
    try:
        return kind(*by_place, **named), heads if known else n_heads
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        given = ", ".join(
            name if MEANS[name] == "config" else f"{name}={value}"
            for name, value in named.items()
        )
        raise LoadError(
            f"{kind.__name__}({given}) failed: {last_line(error)} Say how it is made: "
            f'--make "{kind.__name__}(...)".'
        ) from None
