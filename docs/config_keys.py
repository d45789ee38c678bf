"""The table of all keys in config/README.md, and config/schema.json, from their descriptions."""

import json
import sys
from pathlib import Path
from typing import Any, get_args

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from scaling.config.config import Recipe  # noqa: E402
from scaling.config.keys import Configuration  # noqa: E402
from scaling.core.section import Section  # noqa: E402
from scaling.registry.engine import ENGINES  # noqa: E402

HEAD = "| key | what it says |\n|---|---|\n"


def rows(section: type[Section] = Configuration, prefix: str = "") -> list[tuple[str, str]]:
    """List the dotted name of every value and what it says; `name[].key` for entries of a list."""
    found = []
    for name, key in section.model_fields.items():
        if key.description:
            says = " ".join(key.description.split())
            allowed = [one for one in get_args(key.annotation) if isinstance(one, str)]
            if any(f"`{one}`" not in says for one in allowed):
                says += f" One of {', '.join(f'`{one}`' for one in allowed)}."
            default = None if key.is_required() else key.get_default(call_default_factory=True)
            if not key.is_required() and not isinstance(default, Section):
                says += f" Default: `{json.dumps(default)}`."
            found.append((prefix + name, says))
        inner, place = section_of(key.annotation)
        if name == "recipes" and section is Configuration:
            found += recipes()
        elif inner:
            found += rows(inner, f"{prefix}{name}{place}.")
    return found


def recipes() -> list[tuple[str, str]]:
    """List the keys of a recipe, whatever it is called: of all, and then of each engine."""
    found = rows(Recipe, "recipes.*.")
    for name in ENGINES.names():
        of_engine = rows(ENGINES.find(name).options, "recipes.*.")
        found += [(key, f"Engine `{name}`: {says}") for key, says in of_engine]
    return found


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a configuration, for editors and `snakemake.utils.validate`.

    A file may be laid over another and hold only what differs: no key is required.
    """
    found = _without_required(Configuration.model_json_schema())
    parts = [Recipe, *(ENGINES.find(name).options for name in ENGINES.names())]
    schemas = [_without_required(part.model_json_schema()) for part in parts]
    base = {
        "description": "Another recipe, whose engine and options this one has.",
        "type": "string",
    }
    # A scheme's one mistake may be given without a list.
    one = found["$defs"]["Variant"]["properties"]["mistakes"]["items"]
    found["$defs"]["Variant"]["properties"]["mistake"] = {"anyOf": [one, {"type": "null"}]}
    options = {"base": base} | {k: v for one in schemas for k, v in one["properties"].items()}
    found["$defs"] |= {k: v for one in schemas for k, v in one.get("$defs", {}).items()}
    recipe = {"type": "object", "properties": options}
    described = found["properties"]["recipes"]["description"]
    found["properties"]["recipes"] = {
        **{"type": "object", "description": described},
        "additionalProperties": recipe,
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def _without_required(found: Any) -> Any:
    if isinstance(found, dict):
        kept = {key: value for key, value in found.items() if key not in ("required", "title")}
        kept |= {"properties": found["properties"]} if "properties" in found else {}
        return {key: _without_required(value) for key, value in kept.items()}
    return [_without_required(one) for one in found] if isinstance(found, list) else found


def section_of(annotation: Any) -> tuple[type[Section] | None, str]:
    """Find the section that a key of this type holds, if any; `[]` where it is a list of them."""
    entries = getattr(annotation, "__args__", (None,))[0]
    for kind, place in ((annotation, ""), (entries, "[]")):
        if isinstance(kind, type) and issubclass(kind, Section):
            return kind, place
    return None, ""


def updated(text: str) -> str:
    """Replace the table of keys that ends `text`."""
    table = "".join(f"| `{name}` | {says} |\n" for name, says in rows())
    return text[: text.index(HEAD)] + HEAD + table


if __name__ == "__main__":
    page = ROOT / "config/README.md"
    page.write_text(updated(page.read_text(encoding="utf-8")), encoding="utf-8")
    text = json.dumps(schema(), indent=1, ensure_ascii=False)
    (ROOT / "config/schema.json").write_text(f"{text}\n", encoding="utf-8")
