// The static hwloc refers to libudev, which has no static form. It uses it for facts that it also finds in files.
// These definitions, hidden in the binary that links them, report that it is not, so that r2ccd starts where libudev is missing.

#define R2CC_NO_UDEV extern "C" __attribute__((visibility("hidden")))

R2CC_NO_UDEV void* udev_new() { return nullptr; }
R2CC_NO_UDEV void* udev_unref(void*) { return nullptr; }
R2CC_NO_UDEV void* udev_device_new_from_subsystem_sysname(void*, const char*, const char*) { return nullptr; }
R2CC_NO_UDEV void* udev_device_unref(void*) { return nullptr; }
R2CC_NO_UDEV const char* udev_device_get_property_value(void*, const char*) { return nullptr; }
