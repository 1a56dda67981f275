"""A room: a folder that is one library, and one test of its unit tests. A new file belongs to it without a word in its BUILD file."""

# What only tests use, by its name; a room's `testing` names the rest.
_TESTING = [
    "fake_*.cc",
    "fake_*.h",
    "*_fixture.h",
    "*_rig.h",
]

_TESTS = ["*_test.cc"]

def room(
        name = None,
        deps = [],
        apart = [],
        testing = [],
        testing_deps = [],
        test_deps = [],
        test_data = [],
        test_size = "medium",
        test_tags = [],
        **kwargs):
    """Three targets of all C++ files in the folder:

    - NAME, a library of all that is not for tests;
    - :testing, a library of fakes, rigs and fixtures, for tests of any folder;
    - :unit_test, all `*_test.cc`.

    Args:
      name: the library's; by default the folder's, so that its label is the folder's path.
      deps: the rooms and libraries that the room uses.
      apart: files, or patterns of files, that belong to other targets of the BUILD file. A comment there says why.
      testing: files for tests alone whose name does not say so.
      testing_deps: what they use beyond `deps`.
      test_deps: what the unit tests use beyond `deps` and `testing_deps`.
      test_data: what the unit tests read.
      test_size: the size of :unit_test.
      test_tags: its tags; a comment says why.
      **kwargs: for the library.
    """
    if not name:
        name = native.package_name().split("/")[-1]
    fakes = _TESTING + testing
    not_shipped = fakes + _TESTS + apart
    native.cc_library(
        name = name,
        srcs = native.glob(["*.cc"], exclude = not_shipped),
        hdrs = native.glob(["*.h"], exclude = not_shipped),
        deps = deps,
        **kwargs
    )
    for_tests = native.glob(fakes, exclude = _TESTS + apart)
    if for_tests:
        native.cc_library(
            name = "testing",
            testonly = True,
            srcs = [file for file in for_tests if file.endswith(".cc")],
            hdrs = [file for file in for_tests if file.endswith(".h")],
            deps = [":" + name, "@system//:gtest"] + testing_deps,
        )
    tests = native.glob(_TESTS, exclude = apart)
    if tests:
        native.cc_test(
            name = "unit_test",
            size = test_size,
            srcs = tests,
            data = test_data,
            tags = test_tags,
            deps = [":" + name, "//bazel:gtest_main"] + ([":testing"] if for_tests else []) + test_deps,
        )
