"""The issuer: signs clients' passes blindly, a fixed number an account and day (docs/adr/0053).

It knows who asks, and sees neither passes nor reports. It imports no other party.
"""
