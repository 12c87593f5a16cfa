"""What all tests share: on a busy machine an example of hypothesis may take as long as it takes."""

from hypothesis import settings

settings.register_profile("quick", deadline=None, max_examples=40)
settings.register_profile("thorough", deadline=None)
settings.load_profile("quick")
