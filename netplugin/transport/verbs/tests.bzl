"""The unit tests of this package: one beside each file."""

def unit_tests():
    """A cc_test of each."""
    for name, deps in {
        "control_thread_test": [
            ":control_thread",
            ":fake_verbs",
        ],
        "device_test": [
            ":device",
            ":fake_verbs",
        ],
        "device_mappings_test": [":device_mappings"],
        "device_sysfs_test": [":device_sysfs"],
        "fake_verbs_test": [":fake_pair"],
        "faulty_verbs_test": [":fake_pair"],
        "fence_test": [
            ":fake_pair",
            ":fence",
        ],
        "gid_test": [":gid"],
        "grant_ring_test": [":grant_ring"],
        "link_core_test": [
            ":fake_verbs",
            ":verbs_transport",
        ],
        "offer_test": [":offer"],
        "queue_pair_test": [
            ":fake_verbs",
            ":record_channel",
        ],
        "rail_port_test": [
            ":fake_verbs",
            ":rail_port",
        ],
        "record_channel_test": [
            ":fake_verbs",
            ":record_channel",
        ],
        "region_table_test": [
            ":fake_verbs",
            ":region_table",
        ],
        "spare_queue_pair_test": [
            ":fake_verbs",
            ":spare_queue_pair",
        ],
        "tail_test": [":tail"],
        "ticket_test": [":ticket"],
        "verbs_port_test": [":fake_links"],
        "verbs_recv_link_test": [":fake_links"],
        "verbs_send_link_test": [":fake_links"],
        "verbs_transport_test": [
            ":fake_verbs",
            ":verbs_transport",
        ],
    }.items():
        native.cc_test(
            name = name,
            size = "small",
            srcs = [name + ".cc"],
            deps = deps + ["//bazel:gtest_main"],
        )
