"""The gateway: any client of any API talks to any model (`dragoman serve`)."""
