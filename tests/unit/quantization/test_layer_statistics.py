from scaling.quantization.layer_statistics import Noise


def test_a_hundred_times_the_power_of_the_error_is_20_db():
    assert Noise(signal=100.0, error=1.0).sqnr_db == 20
