"""The gateway (`dragoman serve`): clients of any supported API can use any configured model."""
