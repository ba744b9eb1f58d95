/** Return the least prime that is not below a number, which is at most 2**31. */
export function primeAtLeast(least: number): number {
  let candidate = Math.max(2, least);
  while (!isPrime(candidate)) candidate += 1;
  return candidate;
}

/** Return whether a number up to 2**31 + 1000 is prime. */
export function isPrime(number: number): boolean {
  for (let factor = 2; factor * factor <= number; factor += 1) if (number % factor === 0) return false;
  return number > 1;
}
