// What a test program costs, for bazel/ci_times.py.
#ifndef R2CC_BAZEL_PROCESSOR_SECONDS_H_
#define R2CC_BAZEL_PROCESSOR_SECONDS_H_

namespace r2cc {

// Makes GoogleTest write the processor seconds of this process, and of its children that it has waited for, into test.xml. Called once by a
// main(), after InitGoogleTest().
void RecordProcessorSeconds();

}  // namespace r2cc

#endif  // R2CC_BAZEL_PROCESSOR_SECONDS_H_
