"""What is in the image besides the libraries that it links."""

# Where each goes.
SOURCES = {
    "//:LICENSE": "/usr/share/doc/r2cc/LICENSE",
    "//client:r2ccctl": "/usr/bin/r2ccctl",
    "//daemon:r2ccd": "/usr/sbin/r2ccd",
    "//deploy/config:r2ccd.textproto": "/etc/r2cc/r2ccd.textproto",
    "//deploy/image:r2cc-setup": "/usr/bin/r2cc-setup",
    "//netplugin:libnccl-net-r2cc.so": "/usr/lib/x86_64-linux-gnu/libnccl-net-r2cc.so",
    "//tools/perf:r2cc-perf": "/usr/bin/r2cc-perf",
}
