import importlib
import sys
import unittest


class MovedTest(unittest.TestCase):
    def test_old_imports_warn_and_give_the_same(self):
        moved = {"summary": ["summarize", "mean"], "alerts": ["find_alerts", "FROST", "STORM"], "export": ["csv_lines"]}
        for module, names in moved.items():
            sys.modules.pop(f"stations.{module}", None)
            with self.assertWarnsRegex(DeprecationWarning, f"stations.reports.{module}"):
                old = importlib.import_module(f"stations.{module}")
            new = importlib.import_module(f"stations.reports.{module}")
            for name in names:
                self.assertIs(getattr(old, name), getattr(new, name))
