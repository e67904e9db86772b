// Every metric of ours: found where it is declared, as an object with a `name` that begins with `ambit_` and a `help`.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { HEADER, table } from './markdown.mjs';

/** Source files of libs and apps, without tests and generated code. */
function sources(root) {
  return ['libs', 'apps'].flatMap((top) =>
    readdirSync(join(root, top))
      .filter((name) => existsSync(join(root, top, name, 'src')))
      .flatMap((name) =>
        readdirSync(join(root, top, name, 'src'), { recursive: true })
          .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && !file.startsWith('generated'))
          .map((file) => ({ file: join(root, top, name, 'src', file), package: `${top}/${name}` })),
      ),
  );
}

const textOf = (node) => (node !== undefined && ts.isStringLiteralLike(node) ? node.text : undefined);

/** What an object literal says under a key, as a node. */
function valueOf(literal, key) {
  const property = literal.properties.find((candidate) => ts.isPropertyAssignment(candidate) && candidate.name.getText() === key);
  return property?.initializer;
}

function metricsIn(file, packageName) {
  const found = [];
  const visit = (node) => {
    if (ts.isObjectLiteralExpression(node)) {
      const name = textOf(valueOf(node, 'name'));
      const help = textOf(valueOf(node, 'help'));
      if (name?.startsWith('ambit_') && help !== undefined) {
        const labels = valueOf(node, 'labels') ?? valueOf(node, 'labelNames');
        found.push({
          name,
          help,
          labels: labels !== undefined && ts.isArrayLiteralExpression(labels) ? labels.elements.map(textOf) : [],
          package: packageName,
        });
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true));
  return found;
}

export function metricsPage(root) {
  const rows = sources(root)
    .filter(({ file }) => readFileSync(file, 'utf8').includes("'ambit_"))
    .flatMap(({ file, package: name }) => metricsIn(file, name))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, help, labels, package: where }) => [
      `\`${name}\``,
      help,
      labels.map((label) => `\`${label}\``).join(', '),
      `\`${where}\``,
    ]);
  return [
    HEADER.replace('libs/contracts. Change the contract', 'the declarations in libs and apps. Change the declaration'),
    '# Metrics\n',
    'Every process serves them at `/metrics` on its `OPS_PORT`, with the label `service`, beside the usual ones of a Node process. Names end with their unit.\n',
    table(['Metric', 'What', 'Labels', 'Declared in'], rows),
  ].join('\n');
}
