export function makeBundle(order: { readonly root: string }): Promise<void>;
