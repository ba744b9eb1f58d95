/** What an object has itself, and not what another script of the page gave all objects. */

/** Return an object with the same own properties that inherits none; of null or undefined an empty one. */
export function own<Data extends object>(data: Data | null | undefined): Data {
  return Object.assign(Object.create(null) as Data, data);
}
