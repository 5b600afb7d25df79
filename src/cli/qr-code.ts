import { encodeQR } from 'qr';

const blackOnWhite = '\u001b[30;107m';
const reset = '\u001b[0m';
/** Light modules around the code, which readers need. */
const border = 2;

/** Renders a QR code as terminal rows, two modules per cell, dark on light whatever the terminal's colors are. */
export function renderQrCode(text: string): string {
  const modules = encodeQR(text, 'raw', { ecc: 'low', border });
  const lines: string[] = [];
  for (let y = 0; y < modules.length; y += 2) {
    const [upper = [], lower = []] = [modules[y], modules[y + 1]];
    const cells = upper.map((isDark, x) => cellOf(isDark, lower[x] ?? false));
    lines.push(`${blackOnWhite}${cells.join('')}${reset}`);
  }
  return `${lines.join('\n')}\n`;
}

function cellOf(isUpperDark: boolean, isLowerDark: boolean): string {
  if (isUpperDark) return isLowerDark ? '█' : '▀';
  return isLowerDark ? '▄' : ' ';
}
