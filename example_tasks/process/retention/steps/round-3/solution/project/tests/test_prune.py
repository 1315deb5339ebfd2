"""What may be deleted, and above all what may not."""

import tempfile
import unittest
from datetime import date

import prune


def backups(*moments, machine="atlas"):
    return [prune.parse_backup(f"{machine}-{moment}.tar.gz") for moment in moments]


def pruned(made, daily=0, weekly=0):
    return [f"{each.made:%m-%d %H}" for each in prune.prune(made, daily, weekly)]


class NamesTest(unittest.TestCase):
    def test_machine_and_moment(self):
        backup = prune.parse_backup("mail-2-2024-04-30T0215.tar.gz")
        self.assertEqual((backup.machine, backup.made.isoformat()), ("mail-2", "2024-04-30T02:15:00"))

    def test_unknown_names_are_no_backups(self):
        for name in (
            "lost+found",
            "atlas-2024-02-30T0200.tar.gz",
            "atlas-2024-02-03T0260.tar.gz",
            "A-2024-02-03T0200.tar.gz",
        ):
            self.assertIsNone(prune.parse_backup(name), name)


class KeepTest(unittest.TestCase):
    def test_newest_is_always_kept(self):
        self.assertEqual(pruned(backups("2024-03-02T0200", "2024-03-01T0200")), ["03-01 02"])

    def test_daily_counts_days_that_have_a_backup(self):
        made = backups("2024-03-01T0200", "2024-03-01T1400", "2024-03-07T0200", "2024-03-31T0200")
        self.assertEqual(pruned(made, daily=3), ["03-01 02"])
        self.assertEqual(pruned(made, daily=2), ["03-01 02", "03-01 14"])

    def test_weekly_keeps_the_newest_of_a_week_from_sunday_to_saturday(self):
        made = backups("2024-04-20T0200", "2024-04-21T0200", "2024-04-27T0200", "2024-04-28T0200")
        self.assertEqual(pruned(made, weekly=3), ["04-21 02"])

    def test_weekly_goes_across_the_turn_of_the_year(self):
        made = backups("2024-12-28T0200", "2024-12-30T0200", "2025-01-01T0200")
        self.assertEqual(pruned(made, weekly=2), ["12-30 02"])

    def test_machines_are_apart(self):
        self.assertEqual(pruned(backups("2024-03-01T0200") + backups("2024-03-02T0200", machine="boreas")), [])


class CountTest(unittest.TestCase):
    def test_whole_numbers_only(self):
        self.assertEqual(prune.count("0"), 0)
        for text in ("-1", "1.5", "", "many"):
            with self.assertRaises(ValueError, msg=text):
                prune.count(text)


class RetiredTest(unittest.TestCase):
    def read(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write(text)
            file.flush()
            return prune.read_retired(file.name)

    def test_all_backups_go_after_the_30th_day(self):
        retired = {"boreas": date(2024, 4, 20)}
        self.assertFalse(prune.is_gone("boreas", retired, date(2024, 5, 20)))
        self.assertTrue(prune.is_gone("boreas", retired, date(2024, 5, 21)))
        self.assertFalse(prune.is_gone("atlas", retired, date(2024, 5, 21)))

    def test_the_newest_goes_too(self):
        made = backups("2024-03-01T0200", "2024-06-01T0200")
        self.assertEqual(prune.prune(made, 7, 4, gone={"atlas"}), made)

    def test_the_later_day_counts(self):
        found = self.read("machine,retired\nboreas,2024-04-20\nboreas,2024-03-01\n")
        self.assertEqual(found, {"boreas": date(2024, 4, 20)})

    def test_unreadable_lists_are_refused(self):
        for text in ("", "boreas,2024-04-20\n", "machine,retired\nboreas\n", "machine,retired\nboreas,2024-04-31\n"):
            with self.assertRaises(prune.ListError, msg=text):
                self.read(text)
        with self.assertRaises(prune.ListError):
            prune.read_retired("no-such-file.csv")
