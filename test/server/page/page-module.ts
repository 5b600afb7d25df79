/** Loads a module of the page that needs no browser. The page is plain JavaScript, so the caller supplies its type. */
export async function pageModule<Shape>(name: string): Promise<Shape> {
  const module: unknown = await import(new URL(`../../../src/server/page/${name}`, import.meta.url).href);
  return module as Shape;
}
