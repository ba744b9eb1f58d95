/** Own properties of objects, without properties that another script of the page gave to all objects. */

/** Return an object with the same own properties that inherits nothing; for null or undefined, an empty object. */
export function own<Data extends object>(data: Data | null | undefined): Data {
  return Object.assign(Object.create(null) as Data, data);
}
