from dataclasses import dataclass


class C:
    is_far = False


@dataclass
class T:
    clock = C()
    problems = ()
    says = ""
    present = None


def told_time(*a):
    return T()
