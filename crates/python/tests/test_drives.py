"""Planning, simulating and measuring from Python: on simulated drives, and on a file."""

import os
import tempfile
import unittest

import polars
import pyarrow

import longtake


class Planned(unittest.TestCase):
    def test_a_plan_has_a_row_for_each_drive_and_tells_the_best(self):
        plan = longtake.plan("2GB/s", keep="1h", drives=["ideal", "samsung-pm1725b-1.6tb"])
        rows = {row["drive"]: row for row in plan.rows}
        self.assertEqual(rows.keys(), {"ideal", "samsung-pm1725b-1.6tb"})
        # 7.2 TB and what else the array needs, on drives of 1.6 and 1 TB.
        self.assertGreaterEqual(rows["samsung-pm1725b-1.6tb"]["drives"], 5)
        self.assertGreaterEqual(rows["ideal"]["drives"], 8)
        self.assertEqual(plan.best["array"]["drives"], rows[plan.best["drive"]]["drives"])
        self.assertEqual(plan.values["requirement"]["keep"], "1h")
        self.assertFalse(plan.confirmed or plan.proofs)
        self.assertEqual(len(plan.to_pandas()), 2)
        self.assertEqual(plan.to_arrow()["drives"].to_pylist(), polars.DataFrame(plan.rows)["drives"].to_list())

    def test_without_drives_the_library_is_planned(self):
        plan = longtake.plan("1GB/s", mission="1h")
        self.assertGreater(len(plan.rows), 10)
        self.assertEqual([row["drives"] is None for row in plan.rows], sorted(row["drives"] is None for row in plan.rows))

    def test_a_proof_records_what_was_planned_on_simulated_drives(self):
        shares = []
        plan = longtake.plan("2GB/s", keep="10m", drives="ideal", prove=True, progress=shares.append)
        self.assertTrue(plan.confirmed)
        self.assertEqual(shares, sorted(shares))
        self.assertTrue(all(0 <= share <= 1 for share in shares), shares)

    def test_what_can_not_be_required_says_why(self):
        for wrong, said in [
            ({"rate": "2GX/s"}, "is not a rate"),
            ({"rate": "2GB/s", "kepp": "1h"}, "unknown field `kepp`"),
            ({"rate": "2GB/s", "drives": "ideal", "prices": {"x": 3.0}}, "price for 'x'"),
            ({"keep": "1h"}, "rate"),
        ]:
            with self.assertRaisesRegex(ValueError, said):
                longtake.plan(**wrong)
        with self.assertRaisesRegex(longtake.LongtakeError, "did you mean 'ideal'"):
            longtake.plan("2GB/s", drives="idea")

    def test_a_notebook_shows_the_answer_and_its_pictures(self):
        shown = longtake.plan("2GB/s", keep="1h", drives=["ideal", "samsung-pm1725b-1.6tb"])._repr_html_()
        self.assertIn("Samsung PM1725b 1.6TB", shown)
        self.assertGreater(shown.count("<svg"), 1)
        self.assertEqual(shown.count("<details>"), shown.count("</details>"))
        self.assertNotIn("<script", shown)


class Simulated(unittest.TestCase):
    def test_what_the_drives_sustain_is_recorded_without_loss(self):
        run = longtake.simulate("synthetic:1GB/s", "sim:samsung-pm1725b-1.6tb*2", 10)
        self.assertTrue(run.lossless)
        ledger = run.ledger
        self.assertEqual(ledger["offered"], ledger["stored"])
        self.assertAlmostEqual(ledger["stored"]["bytes"], 10e9, delta=1e6)
        self.assertEqual(len(run.drives), 2)
        self.assertEqual([row["lost_bytes"] for row in run.rows if row["lost_bytes"]], [])
        self.assertIn("Nothing was lost.", run._repr_html_())

    def test_what_they_do_not_sustain_is_lost_and_counted(self):
        run = longtake.simulate(
            "synthetic:20GB/s", "sim:samsung-pm1725b-1.6tb*2", "2s", memory="64MiB", placement="stripe"
        )
        self.assertFalse(run.lossless)
        lost = sum(count["packets"] for count in run.ledger["lost"].values())
        self.assertEqual(run.ledger["offered"]["packets"], run.ledger["stored"]["packets"] + lost)
        self.assertGreater(lost, 0)
        self.assertGreater(sum(row["lost_bytes"] for row in run.rows), 0)
        self.assertIn("first loss after", run._repr_html_())

    def test_an_exception_in_the_callers_function_ends_it(self):
        class Enough(Exception):
            pass

        def enough(share):
            raise Enough(share)

        with self.assertRaises(Enough):
            longtake.simulate(
                "synthetic:9GB/s", "sim:samsung-pm1725b-1.6tb*4", "30d", when_full="wrap", progress=enough
            )

    def test_real_drives_are_not_simulated(self):
        with tempfile.TemporaryDirectory() as folder:
            target = os.path.join(folder, "array")
            with self.assertRaisesRegex(longtake.LongtakeError, "simulated drives"):
                longtake.simulate("synthetic:1GB/s", target, "1s")
            self.assertFalse(os.path.exists(target))
        for depth in (0, 65):
            with self.assertRaisesRegex(longtake.LongtakeError, f"takes {depth} writes at a time: give 1 to 64"):
                longtake.simulate("synthetic:1GB/s", "sim:ideal", "1s", depth=depth)
        with self.assertRaisesRegex(ValueError, "placement"):
            longtake.simulate("synthetic:1GB/s", "sim:ideal", "1s", placement="raid")


class Measured(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def within(self, name):
        return os.path.join(self.folder, name)

    def test_a_file_is_measured_and_written_over_only_if_named(self):
        file, output = self.within("file"), self.within("results")
        cost = longtake.measuring_cost("fill", file, size="64MiB")
        self.assertGreaterEqual(cost["cost"]["written_bytes"], 64 << 20)
        self.assertFalse(os.path.exists(file))
        # Where the disk is uneven, the rests that may show a cache would take minutes.
        measured = longtake.measure("fill", file, size="64MiB", time="20s", output=output)
        self.assertEqual(str(measured.folder), output)
        self.assertTrue((measured.folder / "report.html").exists() and (measured.folder / "profile.toml").exists())
        figures = {row["name"]: row["value"] for row in measured.rows}
        self.assertGreater(figures["write.overwrite"], 0)
        curve = measured.series["fill-empty"]
        self.assertEqual(len(curve["rate"]), len(curve["bytes"]))
        self.assertEqual(measured.units["fill-empty"]["rate"], "B/s")
        self.assertTrue(measured.answers["fill"])
        self.assertIn("<svg", measured._repr_html_())

        # A file that somebody else wrote.
        with open(self.within("thesis"), "wb") as thesis:
            thesis.write(b"do not lose me" * 1_000_000)
        with self.assertRaisesRegex(longtake.LongtakeError, "thesis"):
            longtake.measure("fill", self.within("thesis"), output=self.within("other"))
        self.assertFalse(os.path.exists(self.within("other")))
        with open(self.within("thesis"), "rb") as thesis:
            self.assertEqual(thesis.read(), b"do not lose me" * 1_000_000)

    def test_the_twin_of_a_measured_drive_records_what_it_does(self):
        measured = longtake.measure("fill", "sim:ideal", output=self.within("results"))
        twin = self.within("twin.toml")
        fitted = longtake.fit(measured, twin, evaluations=15)
        self.assertEqual(fitted.rejected, [])
        self.assertLess(fitted.residual, 0.1)
        self.assertIn("[simulated", fitted.profile)
        with open(twin) as file:
            self.assertEqual(file.read(), fitted.profile)
        overwriting = next(row for row in fitted.rows if row["name"] == "write.overwrite")
        rate = f"{overwriting['twin'] / 2e9:.3f}GB/s"
        self.assertTrue(longtake.simulate(f"synthetic:{rate}", f"sim:{twin}", "5s").lossless)
        with self.assertRaises(FileExistsError):
            longtake.fit(measured, twin, evaluations=1)
        self.assertIn("measured and of the twin", fitted._repr_html_())
        self.assertIsInstance(fitted.to_arrow(), pyarrow.Table)

    def test_a_fit_writes_over_none_of_its_inputs_and_needs_a_place_for_its_output(self):
        measured, like = self.within("measured.toml"), self.within("like.toml")
        for path in (measured, like):
            with open(path, "w") as file:
                file.write("somebody's profile")
            with self.assertRaisesRegex(longtake.LongtakeError, "is an input of this command"):
                longtake.fit(measured, path, like=like, overwrite=True)
            with open(path) as file:
                self.assertEqual(file.read(), "somebody's profile")
        with self.assertRaisesRegex(longtake.LongtakeError, "is not a folder"):
            longtake.fit(measured, self.within("nowhere/twin.toml"))

    def test_wrong_arguments_are_named(self):
        with self.assertRaisesRegex(ValueError, "no experiment 'fil'"):
            longtake.measure("fil", "sim:ideal")
        with self.assertRaisesRegex(TypeError, "'bloc'"):
            longtake.measuring_cost("fill", "sim:ideal", bloc=1)
        with self.assertRaisesRegex(longtake.LongtakeError, "no experiment fits"):
            longtake.measure("fill", "sim:ideal", read_only=True, output=self.within("results"))
        self.assertFalse(os.path.exists(self.within("results")))


if __name__ == "__main__":
    unittest.main()
