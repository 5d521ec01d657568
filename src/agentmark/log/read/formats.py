"""The formats that are read here. A new one is a file beside this one, and a line in this table."""

from agentmark.log.read.format import FormatTable
from agentmark.log.read.inspect_ai import InspectLog
from agentmark.log.read.json_lines import JsonLines, JsonRecords
from agentmark.log.read.langfuse import LangfuseObservations
from agentmark.log.read.langsmith import LangSmithRuns
from agentmark.log.read.otlp import OtlpJson
from agentmark.log.read.parquet import Parquet
from agentmark.log.read.phoenix import PhoenixSpans
from agentmark.log.read.sqlite import SqliteDatabase

# In this order: the first that matches is the one.
FORMATS = FormatTable(
    (
        JsonLines(),
        JsonRecords(),
        SqliteDatabase(),
        OtlpJson(),
        InspectLog(),
        LangSmithRuns(),
        PhoenixSpans(),
        LangfuseObservations(),
        Parquet(),
    )
)
