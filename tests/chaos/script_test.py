import dataclasses
import unittest

from tests.chaos import script as scripts
from tests.chaos.script import KINDS, QUIET_S, REST_S, Fault, Shape

SECONDS = 1200.0
SHAPE = Shape(etcd=True)


class Make(unittest.TestCase):

  def test_a_seed_is_a_script(self):
    one, same, other = (scripts.make(seed, SECONDS, SHAPE) for seed in (3, 3, 4))
    self.assertEqual(one, same)
    self.assertNotEqual(one.faults, other.faults)

  def test_each_two_nodes_have_a_sound_rail_at_every_time(self):
    for seed, shape in enumerate((Shape(2, 2), Shape(3, 3), Shape(4, 2), Shape(3, 4))):
      script = scripts.make(seed, SECONDS, shape)
      worst = shape.rails
      for fault in script.faults:
        broken = [(other.node, other.rail) for other in script.faults
                  if KINDS[other.kind].breaks_rail and other.at_s <= fault.at_s < other.end_s]
        ways = [len(scripts.sound_between(one, other, shape.rails, broken)) for one in range(shape.nodes) for other in range(one)]
        worst = min(worst, *ways)
      self.assertEqual(worst, 1, f"{shape}: not one and no less is left")

  def test_faults_of_one_target_do_not_overlap(self):
    script = scripts.make(5, SECONDS, SHAPE)
    for number, fault in enumerate(script.faults):
      for other in script.faults[number + 1:]:
        if other.at_s < fault.end_s + REST_S:
          self.assertFalse(fault.held & other.held, f"{fault} and {other}")

  def test_every_kind_occurs_and_several_at_once(self):
    script = scripts.make(6, SECONDS, SHAPE)
    occurred = set()
    for shape in (dataclasses.replace(SHAPE, release=True), Shape(guest=True, links="bond"), Shape(guest=True, links="vlan")):
      occurred |= {fault.kind for fault in scripts.make(6, 2 * SECONDS, shape).faults}
    self.assertEqual(occurred, set(KINDS))
    together = max(sum(other.at_s <= fault.at_s < other.end_s for other in script.faults) for fault in script.faults)
    self.assertGreaterEqual(together, 5)
    self.assertEqual({job.kind for job in script.jobs}, set(scripts.JOB_KINDS))

  def test_it_begins_and_ends_in_quiet(self):
    script = scripts.make(7, SECONDS, SHAPE)
    self.assertGreaterEqual(min(fault.at_s for fault in script.faults), QUIET_S)
    self.assertLessEqual(max(fault.end_s for fault in script.faults), SECONDS - QUIET_S)
    self.assertLessEqual(max(job.at_s + job.for_s for job in script.jobs), SECONDS + 0.001)

  def test_some_kinds_alone(self):
    script = scripts.make(8, SECONDS, SHAPE, ("cut", "flap"), ("small",))
    self.assertEqual({fault.kind for fault in script.faults}, {"cut", "flap"})
    self.assertEqual({job.kind for job in script.jobs}, {"small"})

  def test_no_fault_of_a_store_that_is_not_there(self):
    script = scripts.make(9, SECONDS, Shape())
    self.assertFalse({fault.kind for fault in script.faults} & {"store-stop", "store-kill"})

  def test_what_the_cluster_lacks_does_not_occur(self):
    for shape, lacking in ((Shape(), {"upgrade", "delay", "repeat", "reorder", "corrupt", "member", "parent"}),
                           (Shape(guest=True), {"upgrade", "reset", "prohibited", "member", "parent"}),
                           (Shape(links="bond"), {"parent", "reborn"}), (Shape(links="vlan"), {"member", "reborn"})):
      self.assertFalse({fault.kind for fault in scripts.make(9, SECONDS, shape).faults} & lacking, shape)

  def test_a_full_fabric_keeps_its_addresses(self):
    script = scripts.make(9, SECONDS, Shape(fabric="full"))
    self.assertFalse({fault.kind for fault in script.faults} & {"address", "reborn", "route"})

  def test_ranks_of_long_jobs_are_not_killed(self):
    script = scripts.make(10, 4 * SECONDS, SHAPE)
    self.assertEqual({fault.slot for fault in script.faults if fault.kind == "rank-kill"}, {1})


class MayBegin(unittest.TestCase):
  SHAPE = Shape(nodes=3, rails=2)

  def test_the_last_way_of_two_nodes_stays(self):
    cut = Fault(1, 5, "cut", 0, 0)
    self.assertTrue(scripts.may_begin(Fault(2, 1, "silence", 1, 0), [cut], self.SHAPE))
    self.assertFalse(scripts.may_begin(Fault(2, 1, "silence", 1, 1), [cut], self.SHAPE))
    self.assertFalse(scripts.may_begin(Fault(2, 1, "mtu", 0, 1), [cut], self.SHAPE))
    self.assertTrue(scripts.may_begin(Fault(2, 1, "drain", 0, 1), [cut], self.SHAPE), "a word is no fault of a rail")

  def test_in_a_full_fabric_the_last_rails_of_two_nodes_may_be_others(self):
    shape, cut = Shape(nodes=2, rails=2, fabric="full"), Fault(1, 5, "cut", 0, 0)
    self.assertTrue(scripts.may_begin(Fault(2, 1, "silence", 1, 1), [cut], shape))
    self.assertFalse(scripts.may_begin(Fault(2, 1, "silence", 0, 1), [cut], shape))

  def test_an_interface_that_is_gone_has_no_rate(self):
    self.assertFalse(scripts.may_begin(Fault(2, 1, "rate", 0, 0), [Fault(1, 5, "reborn", 0, 0)], self.SHAPE))
    self.assertFalse(scripts.may_begin(Fault(2, 1, "reborn", 0, 0), [Fault(1, 5, "rate", 0, 0)], self.SHAPE))
    self.assertTrue(scripts.may_begin(Fault(2, 1, "cut", 0, 0), [Fault(1, 5, "rate", 0, 0)], self.SHAPE))


class ReadAndWrite(unittest.TestCase):

  def test_reads_back_the_script(self):
    script = scripts.make(11, SECONDS, SHAPE)
    self.assertEqual(scripts.read(scripts.write(script)), script)

  def test_faults_may_be_taken_out(self):
    script = scripts.make(12, SECONDS, SHAPE)
    lines = scripts.write(script).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith('{"fault"'))
    self.assertEqual(scripts.read("\n".join(lines[:first + 1])).faults, script.faults[:1])

  def test_a_script_that_leaves_no_way_is_refused(self):
    shape = Shape(2, 2)
    script = dataclasses.replace(scripts.make(13, SECONDS, shape), faults=(Fault(1, 5, "cut", 0, 0), Fault(2, 5, "cut", 1, 1)))
    with self.assertRaisesRegex(ValueError, "cut n1/rail1 at 2 s"):
      scripts.read(scripts.write(script))

  def test_a_fault_that_the_cluster_cannot_have_is_refused(self):
    script = dataclasses.replace(scripts.make(13, SECONDS, Shape()), faults=(Fault(1, 5, "member", 0, 0, value=1),))
    with self.assertRaisesRegex(ValueError, "member n0/rail0 1 at 1 s: this cluster cannot have it"):
      scripts.read(scripts.write(script))

  def test_an_unknown_fault_is_named(self):
    text = scripts.write(scripts.make(14, SECONDS, SHAPE)).replace('"kind": "cut"', '"kind": "meteor"')
    with self.assertRaisesRegex(ValueError, "meteor"):
      scripts.read(text)

  def test_another_file_is_refused(self):
    for text in ("", "{}\n", '{"seed": 1}\n', "hello\n"):
      with self.assertRaises(ValueError):
        scripts.read(text)
