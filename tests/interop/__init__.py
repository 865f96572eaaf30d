import pytest

pytest.register_assert_rewrite("tests.interop.side_by_side")
