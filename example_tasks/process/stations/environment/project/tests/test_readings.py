import unittest

from stations.readings import parse


class ReadingsTest(unittest.TestCase):
    def test_line_that_is_none(self):
        for line in ("oslo", "oslo 2024-03-01T06:00 warm 4", "oslo 2024-03-01T06:00 1.0 4 5"):
            with self.assertRaises(ValueError, msg=line):
                parse(line)
