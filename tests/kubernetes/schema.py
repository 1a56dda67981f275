"""Objects of Kubernetes held against the models of Debian's python3-kubernetes: no unknown field, no wrong type, none missing.

The API server drops what it does not know without a word, so that a misspelt field is a setting that is not there.
"""

import re
from typing import Any

from kubernetes import client

_STRICT = client.Configuration()
_LENIENT = client.Configuration()
_LENIENT.client_side_validation = False
_SIMPLE = {"str": str, "int": int, "bool": bool, "object": object}


def problems(thing: dict[str, Any]) -> list[str]:
  """One line for each mistake in an object that says what it is by `apiVersion` and `kind`."""
  version, kind = str(thing.get("apiVersion")), str(thing.get("kind"))
  name = version.split("/")[-1].capitalize() + kind
  if not hasattr(client, name):
    return [f"{version} {kind}: there is no such kind"]
  return _of_type(thing, name, kind)


def problems_of_model(thing: dict[str, Any], name: str) -> list[str]:
  """The same for a part, or for an object whose model has another name than its kind."""
  return _of_type(thing, name, name)


def _of_type(value: Any, kind: str, path: str) -> list[str]:
  if match := re.fullmatch(r"list\[(.*)\]", kind):
    if not isinstance(value, list):
      return [f"{path}: not a list"]
    return [one for i, part in enumerate(value) for one in _of_type(part, match.group(1), f"{path}[{i}]")]
  if match := re.fullmatch(r"dict\(str, (.*)\)", kind):
    if not isinstance(value, dict):
      return [f"{path}: not a map"]
    return [one for name, part in value.items() for one in _of_type(part, match.group(1), f"{path}.{name}")]
  if kind == "datetime":
    # RFC 3339, as metav1.Time reads it.
    return [] if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", value) else [f"{path}: {value!r} is no time"]
  if kind in _SIMPLE:
    # True is an int for Python, and for nobody else.
    fits = isinstance(value, _SIMPLE[kind]) and not (kind == "int" and isinstance(value, bool))
    return [] if fits else [f"{path}: {value!r} is no {kind}"]
  return _of_model(value, getattr(client, kind), path)


def _of_model(value: Any, model: type, path: str) -> list[str]:
  if not isinstance(value, dict):
    return [f"{path}: not a map"]
  known = {name: (attribute, model.openapi_types[attribute]) for attribute, name in model.attribute_map.items()}
  found = [f"{path}: unknown field {name}" for name in value if name not in known]
  found += [f"{path}: {name} is missing" for name, (attribute, _) in known.items() if name not in value and _is_required(model, attribute)]
  return found + [one for name, part in value.items() if name in known for one in _of_type(part, known[name][1], f"{path}.{name}")]


def _is_required(model: type, attribute: str) -> bool:
  """The models say so in no other way than by refusing None."""
  bare = model(local_vars_configuration=_LENIENT)
  bare.local_vars_configuration = _STRICT
  try:
    setattr(bare, attribute, None)
  except ValueError:
    return True
  return False
