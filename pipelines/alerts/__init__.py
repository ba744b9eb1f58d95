"""What an operator is told of without asking: changes, losses, budgets."""
