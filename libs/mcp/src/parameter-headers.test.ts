import { expect, it } from '@jest/globals';
import { mirroredParameters, parameterHeaders } from './parameter-headers.js';

const schema = (properties: Record<string, unknown>, more: Record<string, unknown> = {}) => ({ type: 'object', properties, ...more });

it('arguments are mirrored into headers as the tool declares, at any depth, and none of the others', () => {
  const parameters = mirroredParameters(
    schema({
      region: { type: 'string', 'x-mcp-header': 'Region' },
      size: { type: 'integer', 'x-mcp-header': 'Size' },
      dry: { type: 'boolean', 'x-mcp-header': 'Dry' },
      place: schema({ city: { type: 'string', 'x-mcp-header': 'City' } }),
      properties: { type: 'string' },
      query: { type: 'string', default: { 'x-mcp-header': 'a value' } },
    }),
  );
  if (typeof parameters === 'string') throw new Error(parameters);
  expect(parameterHeaders(parameters, { region: 'us west', size: 42, dry: false, place: { city: 'Köln' }, query: 'x' })).toEqual({
    'Mcp-Param-Region': 'us west',
    'Mcp-Param-Size': '42',
    'Mcp-Param-Dry': 'false',
    'Mcp-Param-City': '=?base64?S8O2bG4=?=',
  });
  expect(parameterHeaders(parameters, { region: null, size: 2 ** 60, place: 'nowhere' })).toEqual({});
});

it.each([
  ['', '=?base64??='],
  [' padded', '=?base64?IHBhZGRlZA==?='],
  ['a\r\nb', '=?base64?YQ0KYg==?='],
  ['=?base64?eA==?=', '=?base64?PT9iYXNlNjQ/ZUE9PT89?='],
  ['a\tb', 'a\tb'],
])('what may not stand in a header as it is, is encoded: %j', (value, header) => {
  expect(parameterHeaders([{ path: ['a'], header: 'A' }], { a: value })).toEqual({ 'Mcp-Param-A': header });
});

it.each([
  ['no name of a header', schema({ a: { type: 'string', 'x-mcp-header': '' } })],
  ['no name of a header', schema({ a: { type: 'string', 'x-mcp-header': 'My Region' } })],
  ['no name of a header', schema({ a: { type: 'string', 'x-mcp-header': 'A\r\nB' } })],
  ['no string, integer or boolean', schema({ a: { type: 'number', 'x-mcp-header': 'A' } })],
  ['no string, integer or boolean', schema({ a: { type: 'object', 'x-mcp-header': 'A' } })],
  ['another one has', schema({ a: { type: 'string', 'x-mcp-header': 'A' }, b: { type: 'string', 'x-mcp-header': 'a' } })],
  ['no chain of properties', schema({ a: { type: 'array', items: { type: 'string', 'x-mcp-header': 'A' } } })],
  ['no chain of properties', schema({}, { $defs: { a: { type: 'string', 'x-mcp-header': 'A' } } })],
  ['no chain of properties', schema({}, { anyOf: [schema({ a: { type: 'string', 'x-mcp-header': 'A' } })] })],
  ['no chain of properties', schema({}, { 'x-mcp-header': 'A' })],
])('a tool that declares it wrongly is told by: %s', (problem, inputSchema) => {
  expect(mirroredParameters(inputSchema)).toContain(problem);
});
