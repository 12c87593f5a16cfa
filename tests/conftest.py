"""What all tests share: on a busy machine an example of hypothesis may take as long as it takes."""

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
