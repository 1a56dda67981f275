"""Kinds of flags that the benchmarks share, for argparse."""

import argparse
import os
import pathlib


def positive_numbers(text: str) -> list[int]:
  """"1,4"."""
  try:
    numbers = [int(word) for word in text.split(",")]
  except ValueError:
    numbers = []
  if not numbers or min(numbers) < 1:
    raise argparse.ArgumentTypeError(f"'{text}' is no list of numbers like 1,4")
  return numbers


def named_values(text: str) -> dict[str, str]:
  """"NAME=VALUE"."""
  name, equals, value = text.partition("=")
  if not name or not equals:
    raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE")
  return {name: value}


def own_path(text: str) -> pathlib.Path:
  """`bazel run` changes the folder; the person meant their own."""
  return (pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", ".")) / pathlib.Path(text).expanduser()).absolute()


def names_file(text: str) -> pathlib.Path:
  path = own_path(text)
  if not path.is_file():
    raise argparse.ArgumentTypeError(f"there is no file {path}")
  return path
