<?xml version="1.0" encoding="UTF-8"?>
<!-- Atom (RFC 4287) as RDF, in the vocabulary of RSS 1.0 (docs/reference/vocabulary.md).
     Says the same as quadloom/syntaxes/feeds/xml_feeds.py for feeds without mistakes; a test compares the two. -->
<xsl:stylesheet version="1.0"
    xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
    xmlns:ql="urn:quadloom:xslt"
    xmlns:atom="http://www.w3.org/2005/Atom"
    xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    xmlns:rss="http://purl.org/rss/1.0/"
    xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:dcterms="http://purl.org/dc/terms/"
    xmlns:content="http://purl.org/rss/1.0/modules/content/"
    xmlns:enc="http://purl.oclc.org/net/rss_2.0/enc#"
    xmlns:foaf="http://xmlns.com/foaf/0.1/"
    exclude-result-prefixes="ql atom">
  <xsl:param name="url"/>

  <xsl:template match="/">
    <rdf:RDF>
      <xsl:apply-templates select="atom:feed | atom:feed/atom:entry"/>
    </rdf:RDF>
  </xsl:template>

  <xsl:template match="atom:feed">
    <rss:channel rdf:about="{$url}">
      <xsl:if test="@xml:lang"><dc:language><xsl:value-of select="@xml:lang"/></dc:language></xsl:if>
      <xsl:call-template name="words">
        <xsl:with-param name="about" select="$url"/>
        <xsl:with-param name="summary" select="atom:subtitle"/>
      </xsl:call-template>
      <xsl:for-each select="atom:logo | atom:icon">
        <foaf:depiction rdf:resource="{ql:resolve(., $url)}"/>
      </xsl:for-each>
      <xsl:for-each select="atom:entry">
        <dcterms:hasPart rdf:resource="{ql:resolve(atom:link[not(@rel) or @rel = 'alternate'][1]/@href, $url)}"/>
      </xsl:for-each>
    </rss:channel>
  </xsl:template>

  <xsl:template match="atom:entry">
    <xsl:variable name="about" select="ql:resolve(atom:link[not(@rel) or @rel = 'alternate'][1]/@href, $url)"/>
    <rss:item rdf:about="{$about}">
      <xsl:call-template name="words">
        <xsl:with-param name="about" select="$about"/>
        <xsl:with-param name="summary" select="atom:summary"/>
      </xsl:call-template>
      <xsl:if test="not(atom:summary)">
        <xsl:call-template name="text">
          <xsl:with-param name="property" select="'rss:description'"/>
          <xsl:with-param name="value" select="ql:plain(atom:content)"/>
        </xsl:call-template>
      </xsl:if>
      <xsl:if test="atom:summary">
        <xsl:call-template name="text">
          <xsl:with-param name="property" select="'content:encoded'"/>
          <xsl:with-param name="value" select="normalize-space(atom:content[not(*)])"/>
        </xsl:call-template>
      </xsl:if>
      <xsl:for-each select="atom:link[@rel = 'enclosure']">
        <enc:enclosure>
          <rdf:Description rdf:about="{ql:resolve(@href, $url)}">
            <xsl:if test="@type"><enc:type><xsl:value-of select="@type"/></enc:type></xsl:if>
            <xsl:if test="@length">
              <enc:length rdf:datatype="http://www.w3.org/2001/XMLSchema#integer"><xsl:value-of select="@length"/></enc:length>
            </xsl:if>
          </rdf:Description>
        </enc:enclosure>
      </xsl:for-each>
    </rss:item>
  </xsl:template>

  <xsl:template name="words">
    <xsl:param name="about"/>
    <xsl:param name="summary"/>
    <xsl:variable name="link" select="atom:link[not(@rel) or @rel = 'alternate'][1]/@href"/>
    <xsl:call-template name="text">
      <xsl:with-param name="property" select="'rss:title'"/>
      <xsl:with-param name="value" select="ql:plain(atom:title)"/>
    </xsl:call-template>
    <xsl:if test="$link"><rss:link rdf:resource="{ql:resolve($link, $url)}"/></xsl:if>
    <xsl:call-template name="text">
      <xsl:with-param name="property" select="'rss:description'"/>
      <xsl:with-param name="value" select="ql:plain($summary)"/>
    </xsl:call-template>
    <xsl:if test="atom:id and normalize-space(atom:id) != $about">
      <dc:identifier><xsl:value-of select="normalize-space(atom:id)"/></dc:identifier>
    </xsl:if>
    <xsl:call-template name="text">
      <xsl:with-param name="property" select="'dc:rights'"/>
      <xsl:with-param name="value" select="ql:plain(atom:rights)"/>
    </xsl:call-template>
    <xsl:for-each select="atom:author/atom:name | atom:contributor/atom:name">
      <dc:creator><xsl:value-of select="normalize-space(.)"/></dc:creator>
    </xsl:for-each>
    <xsl:for-each select="atom:category">
      <xsl:call-template name="text">
        <xsl:with-param name="property" select="'dc:subject'"/>
        <xsl:with-param name="value" select="concat(@label, substring(@term, 1, string-length(@term) * not(@label)))"/>
      </xsl:call-template>
    </xsl:for-each>
    <xsl:apply-templates select="atom:published | atom:updated" mode="date"/>
  </xsl:template>

  <xsl:template match="atom:published" mode="date">
    <dc:date rdf:datatype="http://www.w3.org/2001/XMLSchema#dateTime"><xsl:value-of select="ql:date-time(.)"/></dc:date>
  </xsl:template>

  <xsl:template match="atom:updated" mode="date">
    <dcterms:modified rdf:datatype="http://www.w3.org/2001/XMLSchema#dateTime"><xsl:value-of select="ql:date-time(.)"/></dcterms:modified>
  </xsl:template>

  <xsl:template name="text">
    <xsl:param name="property"/>
    <xsl:param name="value"/>
    <xsl:if test="$value != ''">
      <xsl:element name="{$property}">
        <xsl:if test="ancestor-or-self::*[@xml:lang]">
          <xsl:attribute name="xml:lang"><xsl:value-of select="ancestor-or-self::*[@xml:lang][1]/@xml:lang"/></xsl:attribute>
        </xsl:if>
        <xsl:value-of select="$value"/>
      </xsl:element>
    </xsl:if>
  </xsl:template>
</xsl:stylesheet>
