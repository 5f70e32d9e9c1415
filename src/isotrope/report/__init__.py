"""One HTML file that says at a glance whether a space is healthy, where it breaks and what repair would do."""

from isotrope.report.build import add_report, write_comparison, write_report

__all__ = ["add_report", "write_comparison", "write_report"]
