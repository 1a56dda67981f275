"""The unit tests of this package: one beside each file."""

def unit_tests():
    """A cc_test of each."""
    for name, deps in {
        "control_thread_test": [
            ":control_thread",
            ":fake_control_thread",
        ],
        "device_test": [
            ":device",
            ":fake_control_thread",
        ],
        "fence_test": [
            ":fake_control_thread",
            ":fence",
            "//base/core/verbs:testing",
        ],
        "flusher_test": [":fake_gpus"],
        "gid_test": [":gid"],
        "gpu_proof_test": [":fake_gpus"],
        "grant_ring_test": [":grant_ring"],
        "link_core_fence_test": [":core_ends"],
        "link_core_test": [":core_ends"],
        "loopback_pair_test": [":fake_gpus"],
        "offer_test": [":offer"],
        "queue_pair_test": [
            ":fake_control_thread",
            ":record_channel",
        ],
        "rail_port_test": [
            ":fake_control_thread",
            ":rail_port",
        ],
        "record_channel_test": [
            ":fake_control_thread",
            ":record_channel",
        ],
        "region_table_test": [
            ":fake_control_thread",
            ":region_table",
        ],
        "site_settings_test": [":site_settings"],
        "tail_test": [":tail"],
        "ticket_test": [":ticket"],
        "verbs_port_test": [":fake_links"],
        "verbs_recv_link_test": [":fake_links"],
        "verbs_send_link_test": [":fake_links"],
        "verbs_transport_test": [
            ":fake_gpus",
            ":verbs_transport",
        ],
    }.items():
        native.cc_test(
            name = name,
            size = "small",
            srcs = [name + ".cc"],
            deps = deps + ["//bazel:gtest_main"],
        )
