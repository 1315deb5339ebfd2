"""What may be deleted, and above all what may not."""

import unittest

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

    def test_weekly_keeps_the_newest_of_a_week_from_monday_to_sunday(self):
        made = backups("2024-04-21T0200", "2024-04-22T0200", "2024-04-28T0200", "2024-04-29T0200")
        self.assertEqual(pruned(made, weekly=3), ["04-22 02"])

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
