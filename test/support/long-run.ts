/** True under `npm run test:long`, where properties, races and kills run with their full counts. */
export const isLong = process.env.PARLEY_LONG === '1';
