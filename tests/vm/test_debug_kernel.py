# SPDX-License-Identifier: Apache-2.0
import pytest

from tests.vm.debug_kernel import CONFIG, missing_settings

WANTED = "# a comment\nCONFIG_KASAN=y\n# CONFIG_SCAN is not set\n"


@pytest.mark.parametrize(
    ("config", "want"),
    [
        pytest.param("CONFIG_KASAN=y\n# CONFIG_SCAN is not set\n", [], id="all there"),
        pytest.param("CONFIG_KASAN=y\n", [], id="what does not exist is not set"),
        pytest.param("# CONFIG_KASAN is not set\n", ["CONFIG_KASAN=y"], id="a setting that was refused"),
        pytest.param(
            "CONFIG_KASAN=y\nCONFIG_SCAN=y\n", ["# CONFIG_SCAN is not set"], id="a setting that came all the same"
        ),
    ],
)
def test_settings_that_the_kernel_did_not_take_are_named(config, want):
    assert want == missing_settings(WANTED, config)


@pytest.mark.parametrize("check", ["KASAN", "PROVE_LOCKING", "DEBUG_KMEMLEAK", "KUNIT", "IMA"])
def test_every_check_is_asked_for(check):
    assert f"CONFIG_{check}=y" in CONFIG.read_text().splitlines()
