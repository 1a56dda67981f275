"""The subjects of commits: at most 72 characters, in the imperative."""

import re

CHARACTERS_MAX = 72

# No imperative begins so. A form with one of these endings states what was done, or what there is, unless it is listed.
_NO_VERBS = {
    "a", "all", "also", "an", "another", "any", "as", "each", "every", "if", "in", "it", "more", "no", "of", "on", "one", "only", "some",
    "that", "the", "these", "this", "those", "two", "what", "when", "where", "which", "while", "who", "whoever", "with", "without",
}
_ENDINGS = re.compile(r"(?:[^e]ed|ing|[^s]s)$")
_VERBS = {"bias", "bring", "canvas", "embed", "focus", "ping", "ring", "shed", "string", "swing"}


def wrong(subject: str) -> str | None:
  """One line about what is wrong with it; None: nothing."""
  if len(subject) > CHARACTERS_MAX:
    return f"{len(subject)} characters, at most {CHARACTERS_MAX}: {subject}"
  text = re.sub(r"^[\w./, *-]+: ", "", subject)
  verb = re.match(r"[A-Za-z-]+", text)
  if verb is None:
    return f"does not begin with a verb: {subject}"
  word = verb.group(0).lower()
  if word in _NO_VERBS or (_ENDINGS.search(word) and word not in _VERBS):
    return f"`{verb.group(0)}` is no imperative: {subject}"
  if text.endswith("."):
    return f"ends with a full stop: {subject}"
  return None
