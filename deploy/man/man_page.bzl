"""A man page of a template and of what programs and files say."""

load("//bazel:release.bzl", "RELEASE_EPOCH_S")

def man_page(name, programs = {}, scripts = {}, files = {}):
    """NAME, such as r2ccd.8, of NAME.scd.

    Args:
      name: the page and the target.
      programs: the name in the template -> a program; what it says to --help_json. They are sources, not tools: built as they are shipped.
      scripts: the same for programs in Python, which are no single file, and the same however they are built.
      files: the name in the template -> a file.
    """
    steps = []
    for word, program in programs.items() + scripts.items():
        steps.append("$(location %s) --help_json > $@.%s" % (program, word))
    arguments = ["%s=$@.%s" % (word, word) for word in programs.keys() + scripts.keys()]
    arguments += ["%s=$(location %s)" % (word, file) for word, file in files.items()]
    steps.append("$(location :pages) $(location :%s.scd) %s > $@.scd" % (name, " ".join(arguments)))
    steps.append("SOURCE_DATE_EPOCH=%d scdoc < $@.scd > $@" % RELEASE_EPOCH_S)
    native.genrule(
        name = name + "_page",
        srcs = [name + ".scd"] + programs.values() + files.values(),
        outs = [name],
        cmd = " && ".join(steps),
        exec_tools = [":pages"] + scripts.values(),
    )
