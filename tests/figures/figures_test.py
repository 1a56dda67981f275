"""docs/figures holds what ./bazelw run //:figures writes."""

import pathlib
import re
import tempfile
import unittest

from tests.figures import charts, figures

FOLDER = pathlib.Path(figures.FOLDER)
STALE = f"{FOLDER} is stale: ./bazelw run //:figures"


def setUpModule():
  global TABLES
  TABLES = figures.computed()  # a minute


class CommittedTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.made = figures.drawn(TABLES)
    cls.committed = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir() if path.suffix in (".csv", ".md", ".svg")}

  def test_committed_files_are_the_kept_ones(self):
    self.assertEqual(sorted(figures.kept(self.made)), sorted(self.committed), STALE)

  def test_the_page_is_made_of_these_tables(self):
    self.assertMultiLineEqual(self.made["README.md"], self.committed["README.md"], STALE)

  def test_charts_are_made_of_these_tables(self):
    drawn_with = set(re.findall(r"matplotlib [0-9.]+", self.committed["bounds.svg"]))
    if charts.RENDERER not in drawn_with:
      self.skipTest(f"needs {', '.join(drawn_with)}: {charts.RENDERER} draws other SVG")
    for name in figures.kept(self.made):
      self.assertTrue(self.made[name] == self.committed[name], f"{name}: {STALE}")

  def test_the_page_names_every_table_and_chart(self):
    for name in [*(f"{name}.csv" for name in TABLES), *(name for name in self.made if name.endswith(".svg"))]:
      self.assertRegex(self.made["README.md"], rf"[`(]{re.escape(name)}[`)]")


class GoalsTest(unittest.TestCase):
  """What the figures are there to show."""

  @classmethod
  def setUpClass(cls):
    cls.tables = TABLES

  def test_ours_is_near_the_bound_and_never_above_the_others(self):
    table = self.tables["bounds"]
    self.assertEqual(28, len(table.rows))
    for row, ours, allowed in zip(table.rows, table.numbers("ours_over_bound"), table.numbers("ours_allowed_over_bound")):
      self.assertLessEqual(ours, allowed, row)
    for row, ours, r2cc, balance in zip(table.rows, table.numbers("ours"), table.numbers("r2cc_allreduce"), table.numbers("balance")):
      self.assertLessEqual(ours, min(r2cc, balance), row)
    self.assertLessEqual(max(table.numbers("ours_segments")), 32)

  def test_r2cc_allreduce_agrees_with_its_formula(self):
    table = self.tables["bounds"]
    for row, formula, simulated in zip(table.rows, table.numbers("r2cc_allreduce_k64"), table.numbers("r2cc_allreduce_k64_simulated")):
      self.assertAlmostEqual(1, simulated / formula, delta=0.02, msg=row)

  def test_closed_forms_are_the_published_ones(self):
    table = self.tables["bounds"]
    for column in ("bound", "r2cc_allreduce", "balance"):
      for row, ours, published in zip(table.rows, table.numbers(column), table.numbers(f"{column}_published")):
        self.assertAlmostEqual(1, ours / published, delta=0.001, msg=row)

  def test_optcc_is_within_6_percent_where_balance_is_100_over(self):
    table = self.tables["optcc"]
    for row, members, optcc, simulated in zip(table.rows, table.numbers("p"), table.numbers("optcc_percent"),
                                              table.numbers("optcc_simulated_percent")):
      if members >= 64:
        self.assertLessEqual(optcc, 6, row)
        self.assertFalse(simulated > 6, row)
    simulated = table.where(loss="1/2").numbers("optcc_simulated_percent")
    self.assertEqual(8, sum(1 for percent in simulated if percent == percent))
    self.assertEqual({100.0}, set(table.where(loss="1/2").numbers("balance_percent")))

  def test_many_gpus_lose_less_than_published(self):
    table = self.tables["failures"]
    for gpus in ("512", "1024"):
      for column in ("ours_percent", "ours_worst_percent"):
        percents = table.where(gpus=gpus).numbers(column)
        self.assertEqual(10, len(percents))
        for lost, percent in enumerate(percents, 1):
          self.assertLess(percent, 1.5 + (4.3 - 1.5) * (lost - 1) / 9, (gpus, column, lost))

  def test_the_longest_stall_is_the_one_that_is_counted(self):
    longest_s = max(self.tables["stalls"].numbers("worst_ms")) * 1e-3
    for counted_s in self.tables["serving_outage"].where(scheme="ours").numbers("outage_s"):
      self.assertAlmostEqual(longest_s, counted_s, delta=0.0005)

  def test_no_prediction_is_better_than_its_step_list(self):
    table = self.tables["alpha"]
    self.assertEqual(2 * 7 * 4 * 4, len(table.rows))
    for row, predicted, simulated in zip(table.rows, table.numbers("predicted_ms"), table.numbers("simulated_ms")):
      if simulated == simulated:
        self.assertLessEqual(simulated, 1.02 * predicted, row)

  def test_the_chosen_schedule_is_the_fastest(self):
    """Or the direct one, if OptCC leads by less than 2 %."""
    table = self.tables["alpha"]
    for row, chosen, optcc, direct, *others in zip(
        table.rows, table.numbers("ratio_to_bound"), table.numbers("optcc_ratio_to_bound"), table.numbers("direct_ratio_to_bound"),
        table.numbers("r2cc_allreduce_ratio_to_bound"), table.numbers("balance_ratio_to_bound")):
      least = min(optcc, direct, *others)
      self.assertIn(chosen, (least, direct), row)
      self.assertLessEqual(0.98 * chosen, least + 0.0001, row)
      if chosen == optcc != direct:
        self.assertLess(optcc, 0.98 * direct + 0.0001, row)

  def test_step_lists_take_what_was_predicted(self):
    checked = [float(cell) for cell in self.tables["failures"].column("ours_simulated_over_predicted") if cell]
    self.assertEqual(4, len(checked))
    for ratio in checked:
      self.assertAlmostEqual(1, ratio, delta=0.02)


class WriteTest(unittest.TestCase):

  def test_writes_what_differs_and_removes_what_is_gone(self):
    with tempfile.TemporaryDirectory() as name:
      folder = pathlib.Path(name, "figures")
      self.assertEqual(["written   a.csv", "written   b.svg"], figures.write({"a.csv": "1\n", "b.svg": "2\n"}, folder))
      (folder / "BUILD.bazel").write_text("", encoding="utf-8")
      self.assertEqual(["removed   b.svg", "written   a.csv"], figures.write({"a.csv": "3\n"}, folder))
      self.assertEqual([], figures.write({"a.csv": "3\n"}, folder))
      self.assertEqual(["BUILD.bazel", "a.csv"], sorted(path.name for path in folder.iterdir()))
