const base64 =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** The smallest picture, as a file. */
export const onePixel = Buffer.from(base64, 'base64');
/** The same, as a model reads it. */
export const aPng = { mimeType: 'image/png', base64 } as const;
