/** Names the models that no budget holds, in a sentence. */
export function unpricedText(names: readonly string[]): string {
  return `budgets are set, but Parley knows no prices for ${names.join(', ')}, so calls to ${names.length === 1 ? 'it' : 'them'} aren't limited`;
}

/** Fix of a model without prices. */
export const priceHint =
  'set models.<alias>.prices and use the alias; a model that costs nothing has prices of 0';
